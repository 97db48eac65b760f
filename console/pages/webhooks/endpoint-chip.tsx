import type { ReactNode } from 'react';
import { Chip } from '../../components/chip.tsx';
import { useTexts } from '../../texts/texts.ts';
import { WEBHOOK_TEXTS } from './texts.ts';
import {
  DELIVERY_TONES,
  type DeliveryRecord,
  deriveEndpointState,
  ENDPOINT_TONES,
  type EndpointRecord,
} from './webhook-records.ts';

export function EndpointChip({ endpoint }: { endpoint: EndpointRecord }): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  const state = deriveEndpointState(endpoint);
  return <Chip tone={ENDPOINT_TONES[state]}>{texts[state]}</Chip>;
}

export function DeliveryChip({ delivery }: { delivery: DeliveryRecord }): ReactNode {
  const texts = useTexts(WEBHOOK_TEXTS);
  return <Chip tone={DELIVERY_TONES[delivery.delivery_status]}>{texts[delivery.delivery_status]}</Chip>;
}
