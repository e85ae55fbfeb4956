"""What is measured: each module runs one kind of measure."""
