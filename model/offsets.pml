/* Ownership of one partition, and the transactions of its messages: docs/architecture/model.md.
 *
 * The database is what its committed transactions wrote. Processes acquire the partition at any time, because the model
 * has no Kafka: so each process may lose the partition without notice, and continues with its old epoch. Each step is
 * atomic; the steps of all processes and of the environment interleave in every order.
 *
 * model/check defines the configurations (PROCESSES, MESSAGES, FAILOVERS, WINDOW, ALONE, KEYS) and the mutants, which are
 * the other names in #ifdef. With WINDOW, messages complete out of order; with ALONE, some of them advance the offset. An assertion begins with the name of its invariant, so that spin prints the name.
 */

#ifndef PROCESSES
#define PROCESSES 2
#endif
#ifndef MESSAGES
#define MESSAGES 3
#endif
#ifndef FAILOVERS
#define FAILOVERS 2 /* 2: any number, 1: at most one, 0: none */
#endif

/* Sessions of a process: two executors with WINDOW, otherwise the worker's and one that the process has abandoned. */
#define SESSIONS (2 * PROCESSES)
#define owner_of(s) ((s) / 2)

#define bit_of(m) (1 << (m))
#define before(n) ((1 << (n)) - 1)

/* With KEYS, message 2 repeats the key of message 0. Bit n of a set of keys is the key of message n. */
#ifdef KEYS
#define key_of(m) ((m) == 2 -> 1 : bit_of(m))
#define keys_of(set) (((set) & 3) | (((set) >> 2) & 1))
#else
#define key_of(m) bit_of(m)
#define keys_of(set) (set)
#endif

/* Messages that must be finished before m starts. With WINDOW, messages 1 and 2 have one order key, message 0 another. */
#ifdef WINDOW
#define earlier(m) ((m) == 2 -> 2 : 0)
#else
#define earlier(m) before(m)
#endif

/* A committed state of the database. An offset is the next one: messages before it are processed. */
typedef Database {
    unsigned epoch : 3;      /* processed_kafka_offsets.owner_epoch, and the epoch of the fence */
    unsigned owner : 2;
    bit released;
    unsigned stored : 2;     /* the stored offset */
    unsigned completed : 3;  /* out_of_order_completions */
    unsigned keys : 3;       /* idempotency_keys */
    unsigned effects : 3;    /* what the handlers wrote */
};
Database db;       /* the primary */
Database standby;  /* an earlier state of the primary */

#define finished(d) (before(d.stored) | d.completed)

/* The transaction of a message in a session. */
#define IDLE 0
#define CLAIMED 1     /* it has claimed the key and run the handler */
#define COMPARED 2    /* only in a mutant: it has compared, and does not hold the lock yet */
#define COMMITTING 3  /* its last step has compared and holds the lock, and COMMIT follows */
#define COMMITTED 4   /* the response to COMMIT is on its way */
typedef Session {
    unsigned state : 3;
    unsigned message : 2;
    unsigned epoch : 3;
    unsigned from : 2;   /* the stored offset that its process had read */
    bit follows;         /* its process has finished the previous message of the order key in this window */
    bit ahead;           /* it completes its message out of order */
    bit fresh;           /* it has inserted the key, and the effect */
    bit lost;            /* its process does not read the response */
    bit current;         /* its snapshot has the process's epoch (isolation REPEATABLE READ) */
    bit stores_nothing;           /* only in mutants: its last step stored nothing */
};
Session session[SESSIONS];

typedef Process {
    bit runs;           /* it has acquired the partition, and has not noticed that the partition is lost */
    unsigned epoch : 3; /* 0: the epoch of no database */
    unsigned stored : 2;
    unsigned done : 3;  /* messages after the stored offset that are finished */
    bit behind;         /* the database has gone back since its acquire */
    bit peeked;         /* only in a mutant: it has read the offset, and does not hold the lock yet */
};
Process process[PROCESSES];

/* Names of invariants. They stay 0, and are not part of the state. */
hidden byte effect_at_most_once;   /* the effect of a key exists once */
hidden byte no_message_skipped;    /* a message before the stored offset, or completed, has its effect */
hidden byte atomic_with_offset;    /* an effect has its offset or its completion, also after the database went back */
hidden byte offset_only_increases; /* within an epoch and a history */
hidden byte no_commit_of_zombie;   /* only the process that acquired last commits */
hidden byte order_of_messages;     /* a message is applied after the earlier ones of its order key */
hidden byte acquire_is_definitive; /* a process with the current epoch has the current offset and completions */
hidden byte release_by_owner;      /* a row is released only by its owner */

#define invariant(name, condition) assert(name || (condition))

hidden byte i;
hidden byte other;

inline check_database() {
    invariant(no_message_skipped, (keys_of(finished(db)) & ~db.effects) == 0);
    invariant(atomic_with_offset, (db.effects & ~keys_of(finished(db))) == 0)
}

/* ---- epochs -----------------------------------------------------------------------------------
 * Epochs are compared for equality only, and an epoch that neither the primary nor the standby has never comes back,
 * because each acquire assigns one that was never used (a counter and random bits). So the model needs two numbers: one
 * for the standby, and one for a primary that is newer. All others become 0. */
inline forget_epoch(number) {
    for (i : 0 .. SESSIONS - 1) {
        if
        :: session[i].epoch == number -> session[i].epoch = 0
        :: else
        fi
    }
    for (i : 0 .. PROCESSES - 1) {
        if
        :: process[i].epoch == number -> process[i].epoch = 0; process[i].behind = 0
        :: else
        fi
    }
}

inline raise_epoch(p) {
#ifdef EPOCH_IS_COUNTER
    db.epoch = db.epoch + 1;
#else
    other = (db.epoch == standby.epoch -> 3 - db.epoch : db.epoch);
    forget_epoch(other);
    db.epoch = other;
#endif
    db.owner = p;
    db.released = 0
}

/* ---- locks ------------------------------------------------------------------------------------
 * A transaction holds its lock from its last step to the end: the offset's row, or the fence shared. An acquire waits for
 * both. Its own locks need no variable, because it is one step. */
#define holds(s) (session[s].state == COMMITTING)
#define holds_row(s) (holds(s) && !session[s].ahead)
#if PROCESSES == 3
#define any_session(f) (f(0) || f(1) || f(2) || f(3) || f(4) || f(5))
#elif PROCESSES == 2
#define any_session(f) (f(0) || f(1) || f(2) || f(3))
#else
#define any_session(f) (f(0) || f(1))
#endif
#define row_locked any_session(holds_row)
#ifdef FENCE_WITHOUT_LOCK
#define acquire_waits row_locked
#else
#define acquire_waits any_session(holds)
#endif

#ifdef EPOCH_IS_COUNTER
#define acquire_possible (!acquire_waits && db.epoch < 5)
#else
#define acquire_possible (!acquire_waits)
#endif

/* ---- a process ---------------------------------------------------------------------------------*/

/* A lost connection, a rejected transaction, an unknown outcome, a crash, a revocation: the process acquires again before
 * it does anything, and reads nothing that its sessions still do. */
inline leave_sessions(p) {
    for (i : 2 * p .. 2 * p + 1) {
        if
        :: session[i].state == COMMITTED -> clear_session(i)
        :: session[i].state != IDLE && session[i].state != COMMITTED -> session[i].lost = 1
        :: else
        fi
    }
    i = 0 /* a d_step must not end with a loop */
}

inline forget_partition(p) {
    process[p].runs = 0;
    process[p].epoch = 0;
    process[p].stored = 0;
    process[p].done = 0;
    process[p].behind = 0
}

inline stop(p) {
    leave_sessions(p);
    forget_partition(p)
}

inline clear_session(s) {
    session[s].state = IDLE;
    session[s].message = 0;
    session[s].epoch = 0;
    session[s].from = 0;
    session[s].follows = 0;
    session[s].ahead = 0;
    session[s].fresh = 0;
    session[s].lost = 0;
    session[s].current = 0;
    session[s].stores_nothing = 0
}

inline granted(p) {
    process[p].epoch = db.epoch;
#ifndef ACQUIRE_READS_WITHOUT_LOCK
    process[p].stored = db.stored;
    process[p].done = db.completed;
#endif
    process[p].behind = 0;
    process[p].peeked = 0;
    process[p].runs = 1
}

#define owns(p) (process[p].epoch == db.epoch && db.owner == (p) && !process[p].behind)

/* What pawl's documents promise about an acquire. */
inline check_position(p) {
    invariant(acquire_is_definitive, !owns(p) || process[p].stored == db.stored);
    invariant(acquire_is_definitive, !owns(p) || (process[p].done & ~finished(db)) == 0);
    invariant(release_by_owner, !owns(p) || !db.released)
}

#define live(s, m) (session[s].state != IDLE && !session[s].lost && session[s].message == (m))
#define in_flight(p, m) (live(2 * (p), m) || live(2 * (p) + 1, m))
#define active(s) (session[s].state != IDLE && !session[s].lost)
#define alone(s) (active(s) && !session[s].ahead)

/* An uncommitted key of another session: the claim waits. */
#define inserts(s, set) (session[s].fresh && key_of(session[s].message) == (set))
#define inserts_1(s) inserts(s, 1)
#define inserts_2(s) inserts(s, 2)
#ifdef KEYS
#define key_locked(m) (key_of(m) == 1 -> any_session(inserts_1) : any_session(inserts_2))
#define key_stored(m) ((db.keys & key_of(m)) != 0)
#else
#define key_locked(m) false
#define key_stored(m) false
#endif

#define position(p) (before(process[p].stored) | process[p].done)

/* The first message in the log's order, after all earlier ones. */
#define may_start_alone(p, m) \
    (process[p].runs && (m) == process[p].stored && !(process[p].done & bit_of(m)) && !active(2 * (p)) && \
     !active(2 * (p) + 1) && !key_locked(m))
/* A message of the window: it waits for those of its order key only. */
#define may_start_ahead(p, m) \
    (process[p].runs && (position(p) & bit_of(m)) == 0 && (earlier(m) & ~position(p)) == 0 && !in_flight(p, m) && \
     !alone(2 * (p)) && !alone(2 * (p) + 1) && !key_locked(m))

inline start(p, s, m, out_of_order) {
    check_position(p);
    session[s].state = CLAIMED;
    session[s].message = m;
    session[s].epoch = process[p].epoch;
    session[s].from = process[p].stored;
    session[s].follows = (out_of_order && (earlier(m) & process[p].done) != 0);
    session[s].ahead = out_of_order;
    session[s].fresh = !key_stored(m);
    session[s].current = (process[p].epoch == db.epoch);
#ifdef CLAIM_OUTSIDE_TRANSACTION
    db.keys = db.keys | key_of(m);
#endif
#ifdef EFFECT_BEFORE_TRANSACTION
    if
    :: session[s].fresh ->
        invariant(effect_at_most_once, (db.effects & key_of(m)) == 0);
        db.effects = db.effects | key_of(m);
        check_database()
    :: else
    fi
#endif
}

/* ---- the last step, on the server ---------------------------------------------------------------*/

#define same_epoch(s) (session[s].epoch == db.epoch)

/* pawl.reject_advance */
#ifdef ADVANCE_WITHOUT_EPOCH
#define advance_epoch(s) true
#else
#define advance_epoch(s) same_epoch(s)
#endif
#ifdef ADVANCE_WITHOUT_PREDECESSOR
#define advance_from(s) true
#else
#define advance_from(s) (session[s].from == db.stored)
#endif

/* pawl.reject_finish, pawl.reject_predecessor, pawl.reject_second_finish */
#ifdef COMPLETION_WITHOUT_EPOCH
#define completion_epoch(s) true
#else
#ifdef COMPLETION_COMPARES_IN_SNAPSHOT
#define completion_epoch(s) (session[s].current)
#else
#define completion_epoch(s) same_epoch(s)
#endif
#endif
#ifdef COMPLETION_WITHOUT_STORED_OFFSET
#define completion_stored(s) true
#else
#define completion_stored(s) (db.stored >= session[s].from)
#endif
#ifdef COMPLETION_WITHOUT_PREDECESSOR
#define completion_follows(s) true
#else
#define completion_follows(s) (!session[s].follows || (earlier(session[s].message) & ~finished(db)) == 0)
#endif
#define completion_first(s) ((db.completed & bit_of(session[s].message)) == 0)

#define last_step_permitted(s) \
    (session[s].ahead -> (completion_epoch(s) && completion_stored(s) && completion_follows(s) && completion_first(s)) \
                      : (advance_epoch(s) && advance_from(s)))

/* Advances wait for the lock of the row. */
#define last_step_waits(s) (!session[s].ahead && row_locked)

inline rejected(s) {
#ifdef ADVANCE_IGNORES_ROW_COUNT
    session[s].stores_nothing = 1;
    session[s].state = COMMITTING
#else
    if
    :: session[s].lost
    :: else -> stop(owner_of(s))
    fi;
    clear_session(s)
#endif
}

inline last_step(s) {
    if
    :: last_step_permitted(s) ->
#ifdef COMPARES_BEFORE_LOCK
        session[s].state = COMPARED
#else
        session[s].state = COMMITTING
#endif
#ifdef ADVANCE_BEFORE_EFFECT
        ;
        db.stored = session[s].message + 1;
        session[s].stores_nothing = 1;
        check_database()
#endif
    :: else -> rejected(s)
    fi
}

inline commit(s) {
    invariant(no_commit_of_zombie, same_epoch(s) && db.owner == owner_of(s));
    invariant(order_of_messages, (earlier(session[s].message) & ~finished(db)) == 0);
#ifndef EFFECT_BEFORE_TRANSACTION
    if
    :: session[s].fresh ->
        invariant(effect_at_most_once, (db.effects & key_of(session[s].message)) == 0);
        db.keys = db.keys | key_of(session[s].message);
        db.effects = db.effects | key_of(session[s].message)
    :: else
    fi;
#endif
    if
    :: session[s].stores_nothing
    :: !session[s].stores_nothing && session[s].ahead ->
#ifdef COMPLETION_AFTER_COMMIT
        skip
#else
        db.completed = db.completed | bit_of(session[s].message)
#endif
    :: else ->
        invariant(offset_only_increases, session[s].message + 1 > db.stored);
        db.stored = session[s].message + 1;
        db.completed = db.completed & ~before(db.stored)
    fi;
    check_database();
    if
    :: session[s].lost -> clear_session(s)
    :: else -> session[s].state = COMMITTED; session[s].fresh = 0; session[s].epoch = 0
    fi
}

/* The process has read the response to COMMIT. */
inline committed(p, s) {
    if
    :: session[s].ahead -> process[p].done = process[p].done | bit_of(session[s].message)
    :: else -> process[p].stored = session[s].message + 1
    fi;
    clear_session(s)
}

/* The connection breaks before the response. */
inline unknown_outcome(p, s) {
#ifdef UNKNOWN_IS_COMMITTED
    if
    :: session[s].ahead -> process[p].done = process[p].done | bit_of(session[s].message)
    :: else -> process[p].stored = session[s].message + 1
    fi;
    leave_sessions(p)
#else
#ifdef UNKNOWN_IS_ROLLED_BACK
    leave_sessions(p)
#else
    stop(p)
#endif
#endif
}

/* ---- advance over completions --------------------------------------------------------------------*/

/* The end of the finished messages at the start of the window. */
#define prefix(p) \
    (!(process[p].done & bit_of(process[p].stored)) -> process[p].stored : \
    (!(process[p].done & bit_of(process[p].stored + 1)) -> process[p].stored + 1 : \
    (!(process[p].done & bit_of(process[p].stored + 2)) -> process[p].stored + 2 : process[p].stored + 3)))

#ifdef PASS_WITHOUT_EPOCH
#define pass_epoch(p) true
#else
#define pass_epoch(p) (process[p].epoch == db.epoch)
#endif
#ifdef PASS_WITHOUT_COUNT
#define pass_counted(p) true
#else
#define pass_counted(p) (((before(other) & ~before(process[p].stored)) & ~db.completed) == 0)
#endif

/* The response may be lost: then the process acquires again. */
inline pass(p, response) {
    other = prefix(p);
    if
    :: pass_epoch(p) && process[p].stored == db.stored && pass_counted(p) ->
        invariant(no_commit_of_zombie, process[p].epoch == db.epoch && db.owner == p);
        invariant(offset_only_increases, other > db.stored);
        db.stored = other;
        db.completed = db.completed & ~before(other);
        check_database();
        if
        :: response -> process[p].stored = other; process[p].done = process[p].done & ~before(other)
        :: else -> stop(p)
        fi
    :: else -> stop(p)
    fi
}

/* ---- release ------------------------------------------------------------------------------------*/

#ifdef RELEASE_BY_ZOMBIE
#define may_release(p) true
#else
#define may_release(p) (process[p].epoch == db.epoch)
#endif

inline release(p) {
    if
    :: may_release(p) -> db.released = 1
    :: else
    fi;
    stop(p)
}

/* ---- steps ----------------------------------------------------------------------------------------*/

#define STEPS_OF_SESSION(p, s) \
    :: d_step { session[s].state == CLAIMED && !last_step_waits(s) -> last_step(s) } \
    :: d_step { session[s].state == COMPARED && !last_step_waits(s) -> session[s].state = COMMITTING } \
    :: d_step { session[s].state == COMMITTING -> commit(s) } \
    :: d_step { session[s].state != IDLE && session[s].state != COMMITTED -> clear_session(s) } /* an error */ \
    :: d_step { session[s].state == COMMITTED && !session[s].lost -> committed(p, s) } \
    :: d_step { active(s) -> unknown_outcome(p, s) }

/* The second session is used only while the first one is, because both are alike. */
#define usable(s) (session[s].state == IDLE && ((s) % 2 == 0 || session[(s) - 1].state != IDLE))
#define START_ALONE(p, s, m) :: d_step { usable(s) && may_start_alone(p, m) -> start(p, s, m, 0) }
#define START_AHEAD(p, s, m) :: d_step { usable(s) && may_start_ahead(p, m) -> start(p, s, m, 1) }

#if MESSAGES == 3
#define EACH_MESSAGE(START, p, s) START(p, s, 0) START(p, s, 1) START(p, s, 2)
#elif MESSAGES == 2
#define EACH_MESSAGE(START, p, s) START(p, s, 0) START(p, s, 1)
#else
#define EACH_MESSAGE(START, p, s) START(p, s, 0)
#endif

proctype Steps(byte p) {
    do
    STEPS_OF_SESSION(p, 2 * p)
    STEPS_OF_SESSION(p, 2 * p + 1)
#if !defined(WINDOW) || defined(ALONE)
    EACH_MESSAGE(START_ALONE, p, 2 * p)
    EACH_MESSAGE(START_ALONE, p, 2 * p + 1)
#endif
#ifdef WINDOW
    EACH_MESSAGE(START_AHEAD, p, 2 * p)
    EACH_MESSAGE(START_AHEAD, p, 2 * p + 1)
    :: d_step { process[p].runs && prefix(p) > process[p].stored && !alone(2 * p) && !alone(2 * p + 1) && !row_locked ->
                pass(p, 1) }
    :: d_step { process[p].runs && prefix(p) > process[p].stored && !alone(2 * p) && !alone(2 * p + 1) && !row_locked ->
                pass(p, 0) }
#endif
#ifdef ACQUIRE_READS_WITHOUT_LOCK
    :: d_step { !process[p].runs && !process[p].peeked ->
                process[p].stored = db.stored; process[p].done = db.completed; process[p].peeked = 1 }
    :: d_step { !process[p].runs && process[p].peeked && acquire_possible -> raise_epoch(p); granted(p) }
#else
    :: d_step { !process[p].runs && acquire_possible -> raise_epoch(p); granted(p) }
#endif
    /* The response to an acquire is lost, or an operator changes a state. */
    :: d_step { !process[p].runs && acquire_possible -> raise_epoch(p) }
    :: d_step { process[p].runs && !active(2 * p) && !active(2 * p + 1) && !row_locked -> release(p) }
    :: d_step { process[p].runs -> stop(p) }
    od
}

/* The standby replays a commit; the primary is lost, and the standby is promoted. Sessions without a transaction may not
 * notice, because a pooler keeps them. A crash that loses the last commits (durability "replayable") is the same. */
inline copy(to, from) {
    to.epoch = from.epoch;
    to.owner = from.owner;
    to.released = from.released;
    to.stored = from.stored;
    to.completed = from.completed;
    to.keys = from.keys;
    to.effects = from.effects
}

hidden byte session_number;

#if FAILOVERS == 1
bit promoted;
#define may_fail_over (!promoted)
#else
#define may_fail_over true
#endif

inline forget_standby() {
    standby.epoch = 0;
    standby.owner = 0;
    standby.released = 0;
    standby.stored = 0;
    standby.completed = 0;
    standby.keys = 0;
    standby.effects = 0
}

inline fail_over() {
    for (session_number : 0 .. SESSIONS - 1) {
        if
        :: session[session_number].state == IDLE || session[session_number].state == COMMITTED
        :: else ->
            if
            :: session[session_number].lost
            :: else -> stop(owner_of(session_number))
            fi;
            clear_session(session_number)
        fi
    }
    for (i : 0 .. PROCESSES - 1) {
        process[i].behind = process[i].runs
    }
#ifndef EPOCH_IS_COUNTER
    if
    :: db.epoch != standby.epoch -> other = db.epoch; forget_epoch(other)
    :: else
    fi;
#endif
#ifdef OFFSET_IN_ANOTHER_STORE
    other = db.stored;
#endif
    copy(db, standby);
#ifdef OFFSET_IN_ANOTHER_STORE
    db.stored = other;
#endif
#if FAILOVERS == 1
    promoted = 1;
    forget_standby();
#endif
    check_database()
}

proctype Environment() {
    do
#if FAILOVERS > 0
    :: d_step {
           may_fail_over ->
#ifndef EPOCH_IS_COUNTER
           if
           :: db.epoch != standby.epoch -> other = standby.epoch; forget_epoch(other)
           :: else
           fi;
#endif
           copy(standby, db)
       }
    :: d_step { may_fail_over -> fail_over() }
#else
    :: false -> skip
#endif
    od
}

init {
    atomic {
        db.epoch = 1;
        db.released = 1;
#if FAILOVERS > 0
        copy(standby, db);
#endif
        for (i : 0 .. PROCESSES - 1) {
            run Steps(i)
        }
        run Environment()
    }
}
