/** What an invoice was computed from, so that whoever gets it can check it (docs/proof.md). */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { buildEventProof, buildInvoiceProof } from '../../actions/proof/invoice-proof.ts';
import { readProofEvents } from '../../actions/proof/proof-events.ts';
import { requireRead } from '../../core/access/role.ts';
import { EventProof, InvoiceProof } from '../../core/proof/record.ts';
import { withBounds } from '../events/usage-query-fields.ts';
import { type Context, idParams, type Route, route } from '../http/route.ts';

const tag = 'Invoices';

const eventParams = idParams.extend({
  event_id: z.string().min(1).meta({ description: 'The id of an event.' }),
});

export const proofRoutes: Route[] = [
  route({
    method: 'get',
    path: '/invoices/:id/proof',
    operation_id: 'getInvoiceProof',
    summary: 'Get what an invoice was computed from, to be checked',
    description:
      'The invoice with its lines as they are kept, and of each usage line whose events were counted, by which definition of the meter, up to where in the log, and the root of a Merkle tree over them. The first request reads the events and takes as long; what it finds is kept. Refused for a draft.',
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
    summary: 'Get the events of an invoice as lines of JSON',
    description:
      'One event a line, as it counts at the marks of the proof, its properties as they were sent, and the `lines` of the invoice that count it; of meters with an expression their `values`, too. A connection that ends in order has sent all of them.',
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
    summary: 'Get the proof that an invoice counts an event',
    description:
      'Of each line that counts it what the line took of the event, and the hashes beside the way from it to the root of the line. It takes as long as the events of the line take to be read.',
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
  // Whatever goes wrong before the first line is still an answer with a status.
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

/** Some at a time: to write each by itself would take longer than to read it. */
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
