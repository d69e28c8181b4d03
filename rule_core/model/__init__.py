"""What a trial is made of: collections, reductions and save configurations."""
