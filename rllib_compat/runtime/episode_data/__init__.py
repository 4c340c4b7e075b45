"""What environments say of their own: collected on env runners, written to files of the trial.

`recorder.py` is the callbacks class; `values.py` is what it keeps of an episode; `files.py` writes
and reads the files, and needs no Ray.
"""
