"""An external scaler for KEDA on lag that lasts: the least lag of the last ``sustainSeconds``, by partition."""
