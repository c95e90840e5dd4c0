"""Training of what the reference learns. Only the command line imports this; it needs the extra ``training``."""
