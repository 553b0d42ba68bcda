"""What a message looks like at each sort of destination. Each shape is a pure function; its module names its documentation."""
