"""An external scaler for KEDA that scales on lag that lasts: the least lag of the last ``sustainSeconds``, by partition."""
