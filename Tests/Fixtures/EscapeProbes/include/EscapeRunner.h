// How the fixture extension runs a probe.
#pragma once

// Runs the requested probe and ends the process, where it is to run in the developer's code. Else nothing happens.
void escape_run_inside(void);
