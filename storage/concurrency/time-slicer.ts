/**
 * Long work yields to other work: requests, renewed leases, the rows of other slices. Code that processes many events or windows
 * counts them, and yields after some milliseconds. Each tick of the event loop runs at most one time slice of pipeline work and one
 * of query work, tenants round-robin. So neither an accept nor a slice slows down with the number of queries.
 *
 * if (slicer.isOver()) await slicer.next();
 *
 * The clock decides only the order of work, so results are the same on any machine.
 */
import { type Asker, FairQueue } from './fair-queue.ts';

const QUANTUM_MS = 5;
/** Number of items between two reads of the clock: each item may take a tenth of a millisecond. */
const CLOCK_CHECK_INTERVAL = 32;

export class TimeSlicer {
  /** Undefined for the pipeline, which works for all tenants. */
  readonly #asker: Asker | undefined;
  #began = performance.now();
  #done = 0;

  constructor(asker?: Asker) {
    this.#asker = asker;
  }

  /** Whether the time slice is over. Called after `done` items. */
  isOver(done = 1): boolean {
    this.#done += done;
    if (this.#done < CLOCK_CHECK_INTERVAL) return false;
    this.#done = 0;
    return performance.now() - this.#began > QUANTUM_MS;
  }

  /** Yields to other work. Throws if the work was aborted meanwhile. */
  async next(signal?: AbortSignal): Promise<void> {
    await waitInLine(this.#asker);
    signal?.throwIfAborted();
    this.#began = performance.now();
  }
}

/** Runs the steps to their result and yields between them when the time slice is over. */
export async function runYielding<Result>(
  steps: Iterator<unknown, Result, undefined>,
  { asker, signal }: { asker?: Asker; signal?: AbortSignal } = {},
): Promise<Result> {
  const slicer = new TimeSlicer(asker);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    if (slicer.isOver()) await slicer.next(signal);
  }
}

export async function mapYielding<From, To>(
  asker: Asker | undefined,
  items: readonly From[],
  make: (item: From) => To,
): Promise<To[]> {
  const slicer = new TimeSlicer(asker);
  const made: To[] = [];
  for (const item of items) {
    made.push(make(item));
    if (slicer.isOver()) await slicer.next();
  }
  return made;
}

type Resume = () => void;

const pipeline: Resume[] = [];
const questions = new FairQueue<Resume>();
let isReleasing = false;

function waitInLine(asker: Asker | undefined): Promise<void> {
  return new Promise((resume) => {
    if (asker === undefined) pipeline.push(resume);
    else questions.add(asker, resume);
    if (isReleasing) return;
    isReleasing = true;
    setImmediate(release);
  });
}

/** Resumes one waiting piece of pipeline work and one waiting query per tick of the event loop. */
function release(): void {
  pipeline.shift()?.();
  questions.take()?.();
  isReleasing = pipeline.length > 0 || questions.size > 0;
  if (isReleasing) setImmediate(release);
}
