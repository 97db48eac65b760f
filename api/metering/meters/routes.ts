/** Meters select and aggregate events. Use this file as the example for a new resource. */
import { archiveMeter, changeMeterFilters } from '../../../actions/metering/meters/change-meter.ts';
import { createMeter } from '../../../actions/metering/meters/create-meter.ts';
import { narrow } from '../../../storage/models/foundation/page.ts';
import { MeterModel } from '../../../storage/models/metering/meter.ts';
import { loadMeterCounting } from '../../../storage/progress/meter-versions.ts';
import { fetchPage } from '../../http/list.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { standardRoutes } from '../../http/standard-routes.ts';
import {
  CreateMeter,
  MeterAnswer,
  MeterDetailAnswer,
  MeterFilter,
  MeterListAnswer,
  meterGrammar,
  UpdateMeter,
} from './schema.ts';

const tag = 'Meters';

const meters = standardRoutes({
  noun: 'meter',
  tag,
  answer: MeterAnswer,
  model: MeterModel,
  show: (meter) => meter,
  list: { filter: MeterFilter, answer: MeterListAnswer, find: findMeters },
});

export const meterRoutes: Route[] = [
  meters.create({
    summary: 'Create a meter',
    description:
      'Creates a meter that counts every accepted event of its name that passes its filters, including past ' +
      'events. Past events are counted in the background, and answers are exact meanwhile. The aggregation cannot ' +
      'be changed later.',
    body: CreateMeter,
    example: {
      body: {
        name: 'Tokens',
        event_name: 'api_call',
        aggregation: { type: 'SUM', field: 'tokens' },
        filters: [{ key: 'region', values: ['eu', 'us'] }],
        reset_usage: 'BILLING_PERIOD',
      },
    },
    handle: ({ body }, context) =>
      createMeter(context.services, context.scope, { definition: body, author: toAuthor(context) }),
  }),
  meters.list,
  route({
    method: 'get',
    path: '/meters/:id',
    operation_id: 'getMeter',
    summary: 'Get a meter and its progress',
    description:
      'Returns the meter, even if it is archived. `state` shows whether events from before its creation or its ' +
      'last change have been counted.',
    tag,
    access: 'meter:read',
    params: idParams,
    success: 200,
    answer: MeterDetailAnswer,
    async handle({ params }, { scope, services }) {
      const meter = await MeterModel.fetch(scope, params.id, { database: services.postgres });
      return { ...meter, ...(await loadMeterCounting(services.postgres, scope, params.id)) };
    },
  }),
  meters.change({
    summary: 'Replace the filters of a meter',
    description:
      'Replaces all filters, for all events: past events are counted again in the background. No other field of a ' +
      'meter can change. Final invoices are unaffected.',
    body: UpdateMeter,
    handle: ({ params, body }, context) =>
      changeMeterFilters(context.services, context.scope, { ...params, ...body, author: toAuthor(context) }),
  }),
  ...(
    [
      ['post', '/meters/:id/disable', 'disableMeter', 'disabled'],
      ['delete', '/meters/:id', 'deleteMeter', 'archived'],
    ] as const
  ).map(([method, path, operation_id, done]) =>
    route({
      method,
      path,
      operation_id,
      summary: 'Archive a meter',
      description:
        'Archives the meter: it matches no further event, and its counted usage remains. Refused while a charge ' +
        'depends on it: a price of a plan, an add-on or a cost sheet that has not ended, or a line of a ' +
        'subscription that is not cancelled. No effect on an archived meter.',
      tag,
      access: 'meter:write',
      params: idParams,
      success: 200,
      answer: MessageAnswer,
      idempotency: 'same',
      handle: async ({ params }, context) => {
        await archiveMeter(context.services, context.scope, { id: params.id, author: toAuthor(context) });
        return { message: `meter ${done}` };
      },
    }),
  ),
];

function findMeters(input: MeterFilter, { scope, services }: Context) {
  const query = narrow(MeterModel.in(scope, services.postgres), [
    ['id', input.meter_ids],
    ['event_name', input.event_name],
  ]);
  return fetchPage(query, input, meterGrammar);
}
