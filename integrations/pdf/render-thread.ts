/**
 * Worker thread of render.ts. A document takes tenths of a second of computing, which would block the server's own
 * thread.
 */
import { parentPort, workerData } from 'node:worker_threads';
import pdfmake from 'pdfmake';
import type { PrintedDocument } from '../../core/invoicing/document/document.ts';
import { Fonts, listFontFiles } from './fonts.ts';
import { buildLayout } from './layout.ts';
import { markDrawnContent } from './tagged.ts';

const files = listFontFiles((workerData as { folder: string | null }).folder);
const paths = new Set(files.flatMap(({ normal, bold }) => [normal, bold]));
pdfmake.setFonts(Object.fromEntries(files.map(({ name, normal, bold }) => [name, { normal, bold }])));
// Only font files are read and no URL is fetched, so that a document cannot reach anything but its input.
pdfmake.setUrlAccessPolicy(() => false);
pdfmake.setLocalAccessPolicy((path: string) => paths.has(path));
const fonts = new Fonts(files);
markDrawnContent();

type RenderRequest = { readonly id: number; readonly document: PrintedDocument };

parentPort!.on('message', ({ id, document }: RenderRequest) => {
  renderDocument(document).then(
    (bytes) => parentPort!.postMessage({ id, bytes }),
    (error: unknown) => parentPort!.postMessage({ id, error: String(error instanceof Error ? error.message : error) }),
  );
});

async function renderDocument(document: PrintedDocument): Promise<Uint8Array> {
  fonts.begin(document.country);
  const buffer = await pdfmake.createPdf(buildLayout(document, fonts)).getBuffer();
  return new Uint8Array(buffer);
}
