"""One module for each origin of measurements; each makes its tables of the public originals in a data folder."""
