/**
 * Long work lets others have their turn: requests, renewed leases, the rows of other slices. Whoever goes through many
 * events or windows counts what it has done, and waits for a turn when some milliseconds are over. However many wait, one
 * round of the event loop takes one stretch of the pipeline's work and one of all questions together, those of different
 * tenants one after the other: so neither an accept nor a slice waits longer the more is asked.
 *
 *   if (turns.isOver()) await turns.next();
 *
 * The clock decides about nothing but whose turn it is, so that what comes out is the same on any machine.
 */
const QUANTUM_MS = 5;
/** The clock is looked at when so many things were done: each of them may take a tenth of a millisecond. */
const CLOCK_CHECK_INTERVAL = 32;

/** For whom a question is worked on; the pipeline works for all. */
export type Asker = string;

export class TimeSlicer {
  readonly #asker: Asker | undefined;
  #began = performance.now();
  #done = 0;

  constructor(asker?: Asker) {
    this.#asker = asker;
  }

  /** After a thing was done, or several. */
  isOver(done = 1): boolean {
    this.#done += done;
    if (this.#done < CLOCK_CHECK_INTERVAL) return false;
    this.#done = 0;
    return performance.now() - this.#began > QUANTUM_MS;
  }

  /** Others go first. Throws when the work was called off meanwhile. */
  async next(signal?: AbortSignal): Promise<void> {
    await waitInLine(this.#asker);
    signal?.throwIfAborted();
    this.#began = performance.now();
  }
}

/** What the steps come to; between them others have their turn when it is time to. */
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

/** What `make` makes of each. */
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
/** By asker, in the order of their next turn. */
const questions = new Map<Asker, Resume[]>();
let isReleasing = false;

function waitInLine(asker: Asker | undefined): Promise<void> {
  return new Promise((resume) => {
    if (asker === undefined) pipeline.push(resume);
    else {
      const waiting = questions.get(asker);
      if (waiting) waiting.push(resume);
      else questions.set(asker, [resume]);
    }
    if (isReleasing) return;
    isReleasing = true;
    setImmediate(release);
  });
}

/** One of each kind in a round of the event loop. */
function release(): void {
  pipeline.shift()?.();
  nextQuestion()?.();
  isReleasing = pipeline.length > 0 || questions.size > 0;
  if (isReleasing) setImmediate(release);
}

/** Whose turn it was goes behind the others. */
function nextQuestion(): Resume | undefined {
  for (const [asker, waiting] of questions) {
    questions.delete(asker);
    const next = waiting.shift();
    if (waiting.length > 0) questions.set(asker, waiting);
    return next;
  }
  return undefined;
}
