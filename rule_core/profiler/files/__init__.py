"""Names, limits and contents of the files of a training job, whatever they hold."""
