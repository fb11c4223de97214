/* A stand-in for libnvidia-ml.so.1, for unmodified programs that load it. What it says stands in the text
 * file $NVML_STAND_IN, which is read anew at every call:
 *
 *   driver VERSION             what the driver calls itself (default 570.86.15)
 *   v3_stride BYTES            bytes from one entry to the next in the lists of version 3 (default 24);
 *                              drivers are known that take 32 or 16
 *   error CALL CODE            what a call answers; CALL may be *
 *   delay CALL MS              how long it takes
 *   gpu UUID [key=value ...]   a device; keys: minor bus name total used reserved util temp power limit fan
 *                              clock ecc throttle display persistence mig (1: divided); a missing one is
 *                              "not supported". need_room=N: its lists ask for a buffer of N entries.
 *   mig SLOT UUID [key=value ...]   a part of the last gpu; keys besides: gi ci
 *   proc PID BYTES [compute|graphics|mps]
 *                              a process on the last device
 *   error, delay               after a device: of calls about it, and about its parts
 *
 * Lines "UUID TYPE DATA" that are added to $NVML_STAND_IN.events are told once to every event set that was
 * made before (TYPE 8: an Xid). Calls are counted, a line each, in $NVML_STAND_IN.calls if that is there.
 *
 * As the real one it must not be shut down under a call: that ends the process.
 */
#ifndef STAND_IN_H
#define STAND_IN_H

typedef unsigned long long u64;
typedef unsigned int u32;
/* A handle is a name that stays good when other devices come and go. */
typedef const char *handle_t;

enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
    RESET_REQUIRED = 16, VERSION_MISMATCH = 18, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999,
};

enum { MAX_DEVICES = 64, MAX_PROCESSES = 96, MAX_RULES = 32, WHOLE = -1 };

struct rule { char call[64]; int is_delay; int value; };
struct rules { int count; struct rule rule[MAX_RULES]; };
struct process { u32 pid; u64 bytes; char list; /* c, g or m */ };
struct device {
    char uuid[80], keys[1024];
    int parent; /* its place among the devices, or WHOLE */
    u32 slot;
    struct rules rules;
    int processes;
    struct process process[MAX_PROCESSES];
};
struct state {
    char driver[80];
    size_t v3_stride;
    struct rules rules;
    int count;
    struct device device[MAX_DEVICES];
};

/* state.c: begin() and about() wait and fail as the state says. Whatever they answer, end() comes after. */
int begin(const char *call, struct state **state);
int about(const char *call, handle_t handle, struct state **state, struct device **device);
void end(struct state *state);
int initialise(const char *call);
int shut_down(void);
struct device *nth_gpu(struct state *state, u32 index);
handle_t handle_of(const char *uuid);
int rule_of(const struct rules *rules, const char *call, int is_delay);
int read_number(const struct device *device, const char *key, u64 *value);
int read_text(const struct device *device, const char *key, char *out, size_t size);
const char *state_path(const char *suffix, char *buffer, size_t size);

#endif
