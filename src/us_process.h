
/*
 * The identity of a process in one word, so that the holder of a role can be
 * recorded in shared memory and its death be noticed.
 *
 *     63                          22 21            0
 *     | start, clock ticks since boot | pid          |     0: no process
 *
 * A pid alone is not enough: the kernel gives it to another process as soon as
 * its holder is gone.  The kernel does not give it twice in the same clock
 * tick (10 ms), since it goes through all other pids first; only a process
 * with CAP_CHECKPOINT_RESTORE can ask for a certain pid.
 *
 * Limits.  A word means something in its pid namespace and until the next
 * boot: it belongs into memory that processes of one namespace share, never
 * into a file.  Without a /proc that shows this namespace, start is zero, and
 * the pid alone counts: a reused pid then seems to be its old holder.  A holder
 * that cannot be seen but exists (hidepid=) counts as alive.
 */


#ifndef _US_PROCESS_H_INCLUDED_
#define _US_PROCESS_H_INCLUDED_


#include "us_base.h"


#ifdef __cplusplus
extern "C" {
#endif


#define US_PROCESS_PID_BITS  22       /* PID_MAX_LIMIT of Linux */

typedef uint64_t  us_process_t;


/* this process; reads /proc, so it is called only when a role is taken */
us_process_t us_process_self(void);

/*
 * 1 as long as any thread of the process may execute an instruction or finish
 * a system call, and if that is not known; 0 for no process.
 */
int us_process_alive(us_process_t process);

/*
 * Bytes of memory that this process may have: the machine's, or the least limit
 * of its cgroups, up to the topmost one.  root: before /proc and /sys, "".
 */
uint64_t us_process_memory(const char *root);


static inline pid_t
us_process_pid(us_process_t process)
{
    return (pid_t) (process & (((us_process_t) 1 << US_PROCESS_PID_BITS) - 1));
}


#ifdef __cplusplus
}
#endif


#endif /* _US_PROCESS_H_INCLUDED_ */
