"""Charts of records, of trials side by side and of simulated policies: tables in, Vega-Lite specs out."""
