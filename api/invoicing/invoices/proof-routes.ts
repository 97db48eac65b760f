/** Publishes the inputs of an invoice, so that its recipient can verify it (docs/proof.md). */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { buildEventProof, buildInvoiceProof } from '../../../actions/invoicing/proof/invoice-proof.ts';
import { readProofEvents } from '../../../actions/invoicing/proof/proof-events.ts';
import { requireRead } from '../../../core/foundation/access/role.ts';
import { EventProof, InvoiceProof } from '../../../core/invoicing/proof/record.ts';
import { type Context, idParams, type Route, route } from '../../http/route.ts';
import { withBounds } from '../../metering/usage/query-fields.ts';

const tag = 'Invoices';

const eventParams = idParams.extend({
  event_id: z.string().min(1).meta({ description: 'Id of the event.' }),
});

export const proofRoutes: Route[] = [
  route({
    method: 'get',
    path: '/invoices/:id/proof',
    operation_id: 'getInvoiceProof',
    summary: 'Get the proof of an invoice',
    description:
      'Returns the stored invoice with its lines. Each usage line names the counted customers, the meter ' +
      'definition, and the log position up to which events were counted. It also has the root of a Merkle tree ' +
      'over the events. The first request reads the events, which takes time in proportion to their number; its ' +
      'result is stored. Refused for a draft.',
    tag,
    access: 'invoice:read',
    params: idParams,
    success: 200,
    answer: InvoiceProof,
    handle: ({ params }, context) =>
      withBounds(context, ({ signal }) =>
        buildInvoiceProof(context.services, context.scope, { invoice_id: params.id, now: context.received_at, signal }),
      ),
  }),
  route({
    method: 'get',
    path: '/invoices/:id/proof/events',
    operation_id: 'getInvoiceProofEvents',
    summary: 'Stream the events of an invoice',
    description:
      'Returns one event per line as JSON, in its state at the log positions of the proof, with its properties as ' +
      'sent. `lines` names the invoice lines that count it; `values` is present for meters with an expression. If ' +
      'the connection ends without an error, all events were sent.',
    tag,
    access: 'invoice:read',
    params: idParams,
    success: 200,
    file_type: 'application/x-ndjson',
    handle: ({ params }, context) =>
      withBounds(context, async ({ signal }) => {
        requireRead(context.principal, 'event', 'a proof with events');
        const input = { invoice_id: params.id, signal };
        return send(await readProofEvents(context.services, context.scope, input), context);
      }),
  }),
  route({
    method: 'get',
    path: '/invoices/:id/proof/events/:event_id',
    operation_id: 'getInvoiceEventProof',
    summary: 'Get the proof of one event',
    description:
      'Returns, for each line that counts the event, the counted part of the event and the sibling hashes from it ' +
      'to the root of the line. The request takes as long as reading the events of the line.',
    tag,
    access: 'invoice:read',
    params: eventParams,
    success: 200,
    answer: EventProof,
    handle: ({ params }, context) =>
      withBounds(context, ({ signal }) => {
        requireRead(context.principal, 'event', 'a proof with events');
        const input = { invoice_id: params.id, event_id: params.event_id, now: context.received_at, signal };
        return buildEventProof(context.services, context.scope, input);
      }),
  }),
];

async function send(lines: AsyncGenerator<string>, { response, log }: Context) {
  // An error before the first line can still be answered with a status.
  const first = await lines.next();
  response.status(200).type('application/x-ndjson; charset=utf-8');
  response.set('Content-Disposition', 'attachment; filename="events.ndjson"');
  try {
    await pipeline(Readable.from(joinPieces(first, lines)), response);
  } catch (error) {
    if (!response.headersSent) throw error;
    response.destroy();
    const left = (error as { code?: string }).code === 'ERR_STREAM_PREMATURE_CLOSE';
    if (left) log.info('the caller left before the end of the events');
    else log.error({ err: error }, 'the events of a proof failed on the way');
  }
}

/** Number of characters per write, because writing each line alone would take longer than reading it. */
const PIECE = 64_000;

async function* joinPieces(first: IteratorResult<string, void>, lines: AsyncGenerator<string>) {
  let piece = first.done ? '' : first.value;
  for await (const line of lines) {
    piece += line;
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}
