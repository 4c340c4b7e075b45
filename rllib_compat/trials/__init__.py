"""What trials of any Ray have logged: read from their folders, and drawn."""
