"""What an accepted set says of sizes, in few words."""
