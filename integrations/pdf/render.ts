/** From what a document says to the bytes of a PDF: short ones and long ones in a thread each, one after the other (docs/rules/documents.md, "Nobody waits for another"). */
import { Worker } from 'node:worker_threads';
import { FarthingError, unavailable } from '../../core/error.ts';
import type { InvoiceDocument } from '../../core/invoice-document/document.ts';

type RenderAnswer = { readonly id: number; readonly bytes?: Uint8Array; readonly error?: string };
type RenderJob = {
  readonly document: InvoiceDocument;
  readonly resolve: (bytes: Buffer) => void;
  readonly reject: (error: Error) => void;
};

/** What takes longer is given up, and the thread with it; those behind it are made by another. */
const TIMEOUT_MS = 60_000;
/** It costs memory, and is started again in half a second. */
const IDLE_MS = 60_000;
/** So many of one asker wait in memory, and of all together; whoever comes then is told to come again. */
const MOST_WAITING = 200;
const MOST_IN_ALL = 2000;

const renderers = new Map<string | null, PdfRenderer>();

/**
 * `fonts`: a folder of more of them. Those of different askers (tenants) are made in turn, so that nobody waits for all that another has
 * asked for.
 */
export function renderPdf(
  document: InvoiceDocument,
  { fonts, asker }: { fonts: string | null; asker: string },
): Promise<Buffer> {
  const renderer = renderers.get(fonts) ?? new PdfRenderer({ folder: fonts });
  renderers.set(fonts, renderer);
  return renderer.render(document, asker);
}

type Renderer = { readonly folder: string | null; readonly thread?: URL; readonly timeout_ms?: number };

/** Characters, as some 300 to 600 lines have them: half a second of computing, where 5,000 lines take 3 s, and 50 s with twenty groups beneath each. */
const SHORT_TEXT_MAX = 20_000;

/** A word that fits no line is broken anew for each of its characters: one of 2,000 takes a second, one of 10,000 ten. */
const WORD_MAX = 1_000;

/** What is long has a thread of its own: what is short waits for what is short, and never for minutes of others. */
export class PdfRenderer {
  readonly #short: Maker;
  readonly #long: Maker;

  constructor(renderer: Renderer) {
    this.#short = new Maker(renderer);
    this.#long = new Maker(renderer);
  }

  /** The same document gives the same bytes. */
  render(document: InvoiceDocument, asker: string): Promise<Buffer> {
    return (isLong(document) ? this.#long : this.#short).make(document, asker);
  }
}

/** By what is laid out line by line: a line may have twenty groups beneath it, and a note thousands of words. */
function isLong({ rows, notes }: InvoiceDocument): boolean {
  let length = 0;
  for (const note of notes) {
    length += note.length;
    if (note.split(/\s/).some((word) => word.length > WORD_MAX)) return true;
  }
  for (const { text, details, quantity, unit_price, amount } of rows) {
    length += text.length + quantity.length + unit_price.length + amount.length;
    for (const detail of details) length += detail.length;
  }
  return length > SHORT_TEXT_MAX;
}

/** One after the other, in a thread that begins with the first and ends when there has been none for a minute. */
class Maker {
  readonly #folder: string | null;
  readonly #source: URL;
  readonly #timeout_ms: number;
  /** By asker, in the order of their next turn. */
  readonly #waiting = new Map<string, RenderJob[]>();
  #waiting_count = 0;
  #making: (RenderJob & { readonly id: number }) | null = null;
  #thread: Worker | null = null;
  #timer: NodeJS.Timeout | null = null;
  #last_id = 0;

  /** `folder` has more fonts (PDF_FONTS_DIR). */
  constructor({ folder, thread = new URL('./render-thread.ts', import.meta.url), timeout_ms = TIMEOUT_MS }: Renderer) {
    this.#folder = folder;
    this.#source = thread;
    this.#timeout_ms = timeout_ms;
  }

  make(document: InvoiceDocument, asker: string): Promise<Buffer> {
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

  /** Whose turn it was goes behind the others. */
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

  /** One at a time: each has its own minute. */
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
      // TypeScript as everywhere, but not the large young generation of ours.
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
    // Of a thread that was given up.
    if (job?.id !== id) return;
    if (bytes) job.resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    else job.reject(new FarthingError('system_error', `the PDF was not made: ${error}`));
    this.#next();
  }

  /** Until when the next answer comes, or how long the thread stays with nothing to do. */
  #expect(): void {
    if (this.#timer) clearTimeout(this.#timer);
    const isIdle = this.#making === null;
    this.#timer = setTimeout(
      () => this.#lost(new FarthingError('service_unavailable', 'the PDF took longer than a minute')),
      isIdle ? IDLE_MS : this.#timeout_ms,
    );
    if (isIdle) this.#timer.unref();
  }

  /** With what it was making; the next ones are made by another thread. */
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
