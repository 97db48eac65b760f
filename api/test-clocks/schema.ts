/** Requests and answers of test clocks. */
import { z } from 'zod';
import { metadata } from '../../core/record.ts';
import { frozenTime, testClockShape } from '../../core/test-clock/record.ts';
import { BASE_COLUMNS, type ListGrammar, listAnswer, listShape } from '../http/list.ts';

const { name } = testClockShape.shape;

export const CreateTestClock = z
  .object({
    frozen_time: frozenTime.meta({
      description: 'The instant that it is in the environment from now on, between the years 2000 and 2200.',
    }),
    name: name.nullish().transform((text) => text ?? null),
    metadata,
  })
  .meta({ id: 'CreateTestClockRequest', example: { frozen_time: '2026-01-01T00:00:00Z', name: 'A year of Acme' } });

export const AdvanceTestClock = z
  .object({
    frozen_time: frozenTime.meta({
      description: 'Where the clock is to stand when everything that is due until then, and then, is done.',
    }),
  })
  .meta({ id: 'AdvanceTestClockRequest', example: { frozen_time: '2027-01-01T00:00:00Z' } });

export const TestClockAnswer = testClockShape.meta({ id: 'TestClockResponse' });
export const TestClockListAnswer = listAnswer(TestClockAnswer, 'ListTestClocksResponse');
export const TestClockFilter = listShape({}).meta({ id: 'TestClockFilter', example: { limit: 1 } });

export const testClockGrammar: ListGrammar = {
  columns: { ...BASE_COLUMNS, name: 'string', test_clock_status: 'string', frozen_time: 'date' },
};
