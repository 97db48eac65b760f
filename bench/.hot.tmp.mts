import { readEvent, properties, elementSpans, NO_PROPERTIES } from '/work/main/core/metering/event-text.ts';
import { parseTimestamp } from '/work/main/core/metering/timestamp.ts';
import { compileMeters, matches } from '/work/main/core/metering/match.ts';
import { measure } from '/work/main/core/metering/compiled-meter.ts';
import { BucketAggregator } from '/work/main/core/metering/plan.ts';
const N = 200000, B = 1000;
let seed = 42; const rnd = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
const names = Array.from({length:20},(_, i)=>`api.request.${i}`);
const cust = Array.from({length:5000},(_, i)=>`customer_${String(i).padStart(6,'0')}_acme`);
const regions=['us-east-1','us-west-2','eu-west-1'];
function ev(i:number){ return JSON.stringify({event_id:`evt_${i.toString(36).padStart(10,'0')}${Math.floor(rnd()*1e15).toString(36)}`, event_name:names[Math.floor(rnd()*20)], external_customer_id:cust[Math.floor(rnd()*rnd()*5000)], timestamp:new Date(1767225600000+i*20+Math.floor(rnd()*3600000)).toISOString(), source:'gateway', properties:{model:'gpt-4o-mini', region:regions[Math.floor(rnd()*3)], tokens:Math.floor(rnd()*10000), duration_ms:Math.round(rnd()*1e6)/1000, status:200, tier:rnd()<.5?'premium':'free', request_id:`req_${Math.floor(rnd()*1e12).toString(36)}`}}); }
const batches: string[] = []; let bytes=0;
for (let b=0;b<N/B;b++){ const t='['+Array.from({length:B},(_,j)=>ev(b*B+j)).join(',')+']'; bytes+=t.length; batches.push(Buffer.from(t).toString('latin1')); }
console.log('bytes/event', bytes/N);
const defs:any[]=[]; for (let i=0;i<50;i++){ const n=names[i%20]!; const kinds=[{type:'COUNT'},{type:'SUM',field:'tokens'},{type:'SUM',expression:'tokens * 2.0 + (model == "gpt" ? 1.0 : 0.0)'},{type:'MAX',field:'duration_ms',bucket_size:'HOUR'},{type:'COUNT_UNIQUE',field:'request_id'},{type:'SUM',field:'duration_ms'}];
 defs.push({id:`meter_${i}`,event_name:n,filters:i%3===0?[{key:'region',values:['us-east-1','us-west-2']}]:[],aggregation:kinds[i%(process.env.NOUNIQ?4:6)],reset_usage:'BILLING_PERIOD'}); }
const index=compileMeters(defs); const scope={tenant_id:'t1',environment_id:'e1'};
const stage=(name:string,f:()=>void)=>{ const ts:number[]=[]; for(let r=0;r<5;r++){const t=process.cpuUsage(); f(); const u=process.cpuUsage(t); ts.push((u.user+u.system)*1000/N);} ts.sort((a,b)=>a-b); console.log(name.padEnd(40),ts[2]!.toFixed(0),'ns/event'); };
stage('elementSpans',()=>{for(const t of batches) elementSpans(t)});
stage('+ readEvent',()=>{for(const t of batches) for(const s of elementSpans(t)) readEvent(t,s.start,s.end)});
stage('+ timestamp',()=>{for(const t of batches) for(const s of elementSpans(t)) parseTimestamp(readEvent(t,s.start,s.end).timestamp!)});
let matched=0, rows=0;
const run=(what:number)=>{ matched=0; rows=0; let agg=new BucketAggregator(); let n=0; for(const t of batches) { for(const s of elementSpans(t)) { const e=readEvent(t,s.start,s.end); const us=parseTimestamp(e.timestamp!) as number; const p=e.properties?properties(t,e.properties.start,e.properties.end):NO_PROPERTIES; const me={event_id:e.event_id!,external_customer_id:e.external_customer_id!,timestamp_us:us,properties:p}; const ms=index.get(e.event_name); if(ms) for(const m of ms) if(matches(m,p)) { matched++; if(what>1){ const c=measure(m,me); if(c.unusable!==undefined) throw new Error(c.unusable); if(what>2) agg.add(scope,m,c);} } } if(what>2 && (n+=B)%50000===0) { if (what>3) rows+=agg.drain().length; else agg=new BucketAggregator(); } } };
stage('+ match',()=>run(1)); console.log('matches/event',matched/N);
stage('+ measure',()=>run(2));
stage('+ aggregate',()=>run(3));
stage('+ drain (every 50k)',()=>run(4)); console.log('rows/event',rows/N);
stage('JSON.parse alone',()=>{for(const t of batches) JSON.parse(t)});
