"""The eighth held-out part's runs of data and trees: pictures, texts, tables, boosted trees."""
