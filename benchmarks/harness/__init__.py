"""What every measure needs: servers, processes, drivers, fleets of schedules, the machine's CPU."""
