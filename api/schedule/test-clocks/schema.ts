import { z } from 'zod';
import { metadata } from '../../../core/foundation/record.ts';
import { frozenTime, testClockShape } from '../../../core/platform/test-clock/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape } from '../../http/list.ts';

const { name } = testClockShape.shape;

export const CreateTestClock = z
  .object({
    frozen_time: frozenTime.meta({
      description: 'Current time of the environment from now on, between the years 2000 and 2200.',
    }),
    name: name.nullish().transform((text) => text ?? null),
    metadata,
  })
  .meta({ id: 'CreateTestClockRequest', example: { frozen_time: '2026-01-01T00:00:00Z', name: 'A year of Acme' } });

export const AdvanceTestClock = z
  .object({
    frozen_time: frozenTime.meta({
      description: 'Target time of the clock. All work that is due until then, inclusive, is done first.',
    }),
  })
  .meta({ id: 'AdvanceTestClockRequest', example: { frozen_time: '2027-01-01T00:00:00Z' } });

export const TestClockAnswer = testClockShape.meta({ id: 'TestClockResponse' });
export const TestClockListAnswer = listAnswer(TestClockAnswer, 'ListTestClocksResponse');
export const TestClockFilter = listShape({}).meta({ id: 'TestClockFilter', example: { limit: 1 } });

export const testClockGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', test_clock_status: 'string', frozen_time: 'date' },
};
