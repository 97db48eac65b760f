/** From what a document says to the bytes of a PDF, in a thread of its own, one after the other (docs/rules/documents.md). */
import { Worker } from 'node:worker_threads';
import { FarthingError } from '../../core/error.ts';
import type { InvoiceDocument } from '../../core/invoice-document/document.ts';

type Waiting = { readonly resolve: (bytes: Buffer) => void; readonly reject: (error: Error) => void };
type Answer = { readonly id: number; readonly bytes?: Uint8Array; readonly error?: string };

/** What takes longer is given up, and the thread with it. */
const TIMEOUT_MS = 60_000;
/** It costs memory, and is started again in half a second. */
const IDLE_MS = 60_000;

const renderers = new Map<string | null, PdfRenderer>();

/** `fonts`: a folder of more of them. A process has one thread for its documents. */
export function pdfOf(document: InvoiceDocument, fonts: string | null): Promise<Buffer> {
  const renderer = renderers.get(fonts) ?? new PdfRenderer(fonts);
  renderers.set(fonts, renderer);
  return renderer.render(document);
}

class PdfRenderer {
  readonly #folder: string | null;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | null = null;
  #timer: NodeJS.Timeout | null = null;
  #asked = 0;

  /** `folder` has more fonts (PDF_FONTS_DIR). */
  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** The same document gives the same bytes. */
  render(document: InvoiceDocument): Promise<Buffer> {
    const thread = this.#running();
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#expect();
      thread.postMessage({ id, document });
    });
  }

  #running(): Worker {
    if (this.#thread) return this.#thread;
    const thread = new Worker(new URL('./thread.mjs', import.meta.url), {
      workerData: { folder: this.#folder },
      // Not the loader and the large young generation of ours.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    thread.unref();
    thread.on('message', (answer: Answer) => this.#answered(answer));
    thread.on('error', (error) => {
      if (this.#thread === thread)
        this.#lost(new FarthingError('system_error', `the PDF was not made: ${error.message}`));
    });
    this.#thread = thread;
    return thread;
  }

  #answered({ id, bytes, error }: Answer): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (bytes) waiting?.resolve(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    else waiting?.reject(new FarthingError('system_error', `the PDF was not made: ${error}`));
    this.#expect();
  }

  /** Until when the next answer comes, or how long the thread stays with nothing to do. */
  #expect(): void {
    if (this.#timer) clearTimeout(this.#timer);
    const isIdle = this.#waiting.size === 0;
    this.#timer = setTimeout(
      () => {
        void this.#thread?.terminate();
        this.#lost(new FarthingError('service_unavailable', 'the PDF took longer than a minute'));
      },
      isIdle ? IDLE_MS : TIMEOUT_MS,
    );
    if (isIdle) this.#timer.unref();
  }

  #lost(error: Error): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#thread = null;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
