// Levels of log messages, with the numbers they have on Apple's systems.
#ifndef BACKGROUNDASSETS_OS_LOG_H
#define BACKGROUNDASSETS_OS_LOG_H
#include <stdint.h>

#define OS_LOG_TYPE_DEFAULT ((uint8_t)0x00)
#define OS_LOG_TYPE_INFO ((uint8_t)0x01)
#define OS_LOG_TYPE_DEBUG ((uint8_t)0x02)
#define OS_LOG_TYPE_ERROR ((uint8_t)0x10)
#define OS_LOG_TYPE_FAULT ((uint8_t)0x11)
#endif
