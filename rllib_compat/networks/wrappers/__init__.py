"""What RLlib wrapped around a base model: an LSTM, attention, earlier steps, a filter."""
