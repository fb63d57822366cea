"""Files and texts in bulk, right and broken: read, or refused in short lines."""
