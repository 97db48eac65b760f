/** Test clocks: the instant that it is in an environment which is not production, and everything that is due on the way to a later one. */
import { createTestClock } from '../../actions/test-clocks/create-test-clock.ts';
import { enqueueAdvance, stopTestClock } from '../../actions/test-clocks/move-test-clock.ts';
import { narrow } from '../../storage/models/page.ts';
import { TestClockModel } from '../../storage/models/test-clock.ts';
import { fetchPage } from '../http/list.ts';
import { idParams, type Route, route, toAuthor } from '../http/route.ts';
import { standardRoutes } from '../http/standard-routes.ts';
import {
  AdvanceTestClock,
  CreateTestClock,
  TestClockAnswer,
  TestClockFilter,
  TestClockListAnswer,
  testClockGrammar,
} from './schema.ts';

const tag = 'Test clocks';

const clocks = standardRoutes({
  noun: 'test_clock',
  called: { path: '/test-clocks', name: 'TestClock', words: 'test clock' },
  tag,
  answer: TestClockAnswer,
  model: TestClockModel,
  show: (clock: TestClockModel) => clock,
  list: {
    filter: TestClockFilter,
    answer: TestClockListAnswer,
    find: (filter, { scope, services }) =>
      fetchPage(narrow(TestClockModel.in(scope, services.postgres), []), filter, testClockGrammar),
  },
});

export const testClockRoutes: Route[] = [
  clocks.create({
    summary: 'Give the environment a clock of its own',
    description:
      'From then on it is `frozen_time` there: requests, events without a time of their own, and everything that is due go by it. Refused for production, and where there are subscriptions or invoices already. An environment has one clock, and keeps it.',
    body: CreateTestClock,
    handle: ({ body }, context) =>
      createTestClock(context.services, context.scope, { wanted: body, author: toAuthor(context) }),
  }),
  clocks.list,
  clocks.search,
  clocks.read({
    summary: 'Get a test clock: where it stands, and how far an advance is',
    description: '`progress` counts what the last advance has done so far.',
  }),
  route({
    method: 'post',
    path: '/test-clocks/:id/advance',
    operation_id: 'advanceTestClock',
    summary: 'Advance a test clock, with everything that is due on the way',
    description:
      'Periods end, trials become paid, drafts become final, webhooks are told: each at its instant, one after the other, in the background. `GET /test-clocks/{id}` tells how far it is, and `GET /workflows/{workflow_id}/{run_id}/summary` what it has done. Until it has ended, requests that would write in the environment are refused with 409. A clock does not go back; to advance it to where it stands does what is due there.',
    tag,
    access: 'test_clock:write',
    params: idParams,
    body: AdvanceTestClock,
    success: 202,
    answer: TestClockAnswer,
    idempotency: {
      replay: (_done, { params }, { scope, services }) =>
        TestClockModel.fetch(scope, params.id, { database: services.postgres }),
    },
    handle: ({ params, body }, context) =>
      enqueueAdvance(context.services, context.scope, { id: params.id, ...body, author: toAuthor(context) }),
  }),
  route({
    method: 'post',
    path: '/test-clocks/:id/stop',
    operation_id: 'stopTestClock',
    summary: 'Stop a test clock that advances',
    description:
      'It stays at the instant that it has reached; what is done is done, and the next advance goes on from there. One that does not advance is answered as it is.',
    tag,
    access: 'test_clock:write',
    params: idParams,
    success: 200,
    answer: TestClockAnswer,
    idempotency: {
      replay: (_done, { params }, { scope, services }) =>
        TestClockModel.fetch(scope, params.id, { database: services.postgres }),
    },
    handle: ({ params }, context) =>
      stopTestClock(context.services, context.scope, { id: params.id, author: toAuthor(context) }),
  }),
];
