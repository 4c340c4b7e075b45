"""msgpack: the codec, the neutral state as plain data, and the form that Ray writes."""
