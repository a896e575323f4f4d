"""Sends parcels of bytes."""
