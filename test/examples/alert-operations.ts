/** The operations of the areas alert.*, on core/catalog/alert. */
import { z } from 'zod';
import { deriveAlertState } from '../../core/catalog/alert/state.ts';
import { alertSettings } from '../../core/catalog/feature/record.ts';

export function stateOfAlert(given: unknown) {
  const { settings, value } = z.object({ settings: alertSettings, value: z.coerce.string() }).parse(given);
  return { state: deriveAlertState(settings, value) };
}
