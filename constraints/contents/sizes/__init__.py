"""Requirements on elements that sizes decide, found size by size: computed elements, and bounds for many."""
