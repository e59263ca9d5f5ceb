"""Which sizes an export is to take, and what further traces show of it."""
