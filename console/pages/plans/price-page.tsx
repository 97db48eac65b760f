import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function PricePage(): ReactNode {
  return <PageHead title="PricePage" />;
}
