/**
 * Renders documents to PDF. Short and long documents each have a thread, which renders one document at a time
 * (docs/rules/documents.md, "Nobody waits for another").
 */
import { Worker } from 'node:worker_threads';
import { FarthingError, unavailable } from '../../core/foundation/error.ts';
import type { PrintedDocument } from '../../core/invoicing/document/document.ts';

type RenderAnswer = { readonly id: number; readonly bytes?: Uint8Array; readonly error?: string };
type RenderJob = {
  readonly document: PrintedDocument;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: Error) => void;
};

/** Time limit of a document. A document that takes longer fails and its thread ends; a new thread renders the next ones. */
const TIMEOUT_MS = 60_000;
/** An idle thread ends after this time, because it takes memory. A new one starts in half a second. */
const IDLE_MS = 60_000;
/** Maximum number of waiting documents, per tenant and in total. A request above it is refused and may be repeated. */
const MOST_WAITING = 200;
const MOST_IN_ALL = 2000;

const renderers = new Map<string | null, PdfRenderer>();

/**
 * Renders a document in a worker thread. `fonts` is a folder of additional fonts. `asker` is the tenant: documents of
 * different tenants alternate, so that no tenant waits for all documents of another.
 */
export function renderPdf(
  document: PrintedDocument,
  { fonts, asker }: { fonts: string | null; asker: string },
): Promise<Buffer> {
  const renderer = renderers.get(fonts) ?? new PdfRenderer({ folder: fonts });
  renderers.set(fonts, renderer);
  return renderer.render(document, asker);
}

type Renderer = { readonly folder: string | null; readonly thread?: URL; readonly timeout_ms?: number };

/**
 * Maximum number of characters of a short document: about 300 to 600 lines, which take half a second. 5,000 lines take 3 s, and 50 s with
 * twenty groups beneath each.
 */
const SHORT_TEXT_MAX = 20_000;

/**
 * Maximum length of a word. A word that fits no line is broken again at each character: 2,000 characters take one
 * second, 10,000 take ten.
 */
const WORD_MAX = 1_000;

/** Long documents have a thread of their own, so that short ones wait only for short ones. */
export class PdfRenderer {
  readonly #short: Maker;
  readonly #long: Maker;

  constructor(renderer: Renderer) {
    this.#short = new Maker(renderer);
    this.#long = new Maker(renderer);
  }

  /** Renders a document. Equal documents give equal bytes. */
  render(document: PrintedDocument, asker: string): Promise<Buffer> {
    return (isLong(document) ? this.#long : this.#short).make(document, asker);
  }
}

/**
 * Whether a document is long. The length of all laid-out text decides, because a line may have twenty groups beneath
 * it, and a note thousands of words.
 */
function isLong({ rows, notes }: PrintedDocument): boolean {
  let length = 0;
  for (const note of notes) {
    length += note.length;
    if (note.split(/\s/).some((word) => word.length > WORD_MAX)) return true;
  }
  for (const { text, details, quantity, unit_price, amount } of rows) {
    length += text.length + (quantity?.length ?? 0) + (unit_price?.length ?? 0) + amount.length;
    for (const detail of details) length += detail.length;
  }
  return length > SHORT_TEXT_MAX;
}

/**
 * Renders one document at a time in a thread, which starts with the first document and ends after a minute without any.
 */
class Maker {
  readonly #folder: string | null;
  readonly #source: URL;
  readonly #timeout_ms: number;
  /** Waiting documents by tenant; tenants are in the order of their next turn. */
  readonly #waiting = new Map<string, RenderJob[]>();
  #waiting_count = 0;
  #making: (RenderJob & { readonly id: number }) | null = null;
  #thread: Worker | null = null;
  #timer: NodeJS.Timeout | null = null;
  #last_id = 0;

  /** `folder` contains additional fonts (PDF_FONTS_DIR). */
  constructor({ folder, thread = new URL('./render-thread.ts', import.meta.url), timeout_ms = TIMEOUT_MS }: Renderer) {
    this.#folder = folder;
    this.#source = thread;
    this.#timeout_ms = timeout_ms;
  }

  make(document: PrintedDocument, asker: string): Promise<Buffer> {
    const waiting = this.#waiting.get(asker) ?? [];
    if (waiting.length >= MOST_WAITING || this.#waiting_count >= MOST_IN_ALL)
      return Promise.reject(unavailable('the PDF of an invoice: many others are being made'));
    return new Promise((resolve, reject) => {
      waiting.push({ document, resolve, reject });
      this.#waiting.set(asker, waiting);
      this.#waiting_count += 1;
      if (!this.#making) this.#next();
    });
  }

  /** Takes the next document of the first tenant, which then moves to the end of the queue. */
  #takeNext(): RenderJob | undefined {
    for (const [asker, waiting] of this.#waiting) {
      this.#waiting.delete(asker);
      const job = waiting.shift();
      if (waiting.length > 0) this.#waiting.set(asker, waiting);
      this.#waiting_count -= 1;
      return job;
    }
    return undefined;
  }

  /** Starts the next document. Only one is rendered at a time, so that each has the full time limit. */
  #next(): void {
    const job = this.#takeNext();
    this.#making = job ? { ...job, id: ++this.#last_id } : null;
    this.#expect();
    if (this.#making) this.#running().postMessage({ id: this.#making.id, document: this.#making.document });
  }

  #running(): Worker {
    if (this.#thread) return this.#thread;
    const thread = new Worker(this.#source, {
      workerData: { folder: this.#folder },
      // The thread loads TypeScript like the main thread. If a document needs more memory than the limit, only this thread ends.
      execArgv: ['--import', new URL('../../process/typescript.mjs', import.meta.url).href],
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    thread.unref();
    thread.on('message', (answer: RenderAnswer) => this.#handleAnswer(answer));
    thread.on('error', (error) => {
      if (this.#thread === thread)
        this.#lost(new FarthingError('system_error', `the PDF was not made: ${error.message}`));
    });
    this.#thread = thread;
    return thread;
  }

  #handleAnswer({ id, bytes, error }: RenderAnswer): void {
    const job = this.#making;
    // Ignores a late answer of a thread that was terminated.
    if (job?.id !== id) return;
    if (bytes) job.resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    else job.reject(new FarthingError('system_error', `the PDF was not made: ${error}`));
    this.#next();
  }

  /** Starts the timer for the next answer, or for the end of an idle thread. */
  #expect(): void {
    if (this.#timer) clearTimeout(this.#timer);
    const isIdle = this.#making === null;
    this.#timer = setTimeout(
      () => this.#lost(new FarthingError('service_unavailable', 'the PDF took longer than a minute')),
      isIdle ? IDLE_MS : this.#timeout_ms,
    );
    if (isIdle) this.#timer.unref();
  }

  /** Terminates the thread and fails its current document; the next ones use another thread. */
  #lost(error: Error): void {
    const thread = this.#thread;
    this.#thread = null;
    void thread?.terminate();
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const job = this.#making;
    this.#making = null;
    job?.reject(error);
    if (this.#waiting_count > 0) this.#next();
  }
}
