"""What a session shows for itself: charts, tables, and the Allure report they are evidence in. Pure but for the build."""
