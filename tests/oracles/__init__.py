"""The real controllers as oracles for the models: their own Go code, run on cases."""
