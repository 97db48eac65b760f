import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function WebhookPage(): ReactNode {
  return <PageHead title="WebhookPage" />;
}
