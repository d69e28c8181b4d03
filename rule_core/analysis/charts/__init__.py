"""Charts for notebooks; bokeh is imported when a chart is drawn."""
