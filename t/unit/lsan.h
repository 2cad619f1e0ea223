
/* what a killed process has is no leak: for LeakSanitizer, where it is */


#ifndef _LSAN_H_INCLUDED_
#define _LSAN_H_INCLUDED_


#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_disable()
#define __lsan_enable()
#endif


#endif /* _LSAN_H_INCLUDED_ */
