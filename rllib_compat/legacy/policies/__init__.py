"""What policies of old Rays were made of: losses, postprocessing, statistics, mixins.

A module an algorithm, with the names that its policies' modules had. TensorFlow's are torch's:
policies train with torch here. People build policies of these functions, or call them in theirs.
"""
