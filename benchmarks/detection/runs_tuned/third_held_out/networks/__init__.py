"""Networks: trainings of tables, pictures, series, point clouds, graphs, and of trees."""
