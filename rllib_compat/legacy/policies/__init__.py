"""Parts of policies of old Rays: losses, postprocessing, statistics, mixins.

Each algorithm has a module, with the names of its old policy modules. Names of TensorFlow's modules
are those of torch: policies train with torch here. Old code builds policies of these functions, or
calls them.
"""
