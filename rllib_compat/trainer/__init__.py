"""The legacy Trainer API over the installed Ray."""
