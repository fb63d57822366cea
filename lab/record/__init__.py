"""The record that a trial leaves: written once, sealed, and read through typed views."""
