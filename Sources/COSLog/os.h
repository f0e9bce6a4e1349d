// The C side of `import os`. The Swift module of the same name lies on top of it, so that `import os.log` finds both.
#ifndef BACKGROUNDASSETS_OS_H
#define BACKGROUNDASSETS_OS_H
#include "lock.h"
#include "log.h"
#endif
