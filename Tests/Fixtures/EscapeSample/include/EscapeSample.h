// Nothing: the library is found by its folder, and its table by escape_probes().
#pragma once
