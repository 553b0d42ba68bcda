"""What is drawn: pure functions from rows to Plotly figures, without Django."""
