"""The rows of programs that use the network, of clouds, databases and services."""

TABLE = r"""
curl, curlie :
 -H,-u,-A,-e,-b,-m,-w,-x,-r,-U,-Y,-y,-z,-P,-C,-Q,-t,--header,--user,--user-agent,--referer,--cookie,--max-time,--write-out=_
 --proxy,--range,--connect-timeout,--retry,--retry-delay,--retry-max-time,--resolve,--interface,--limit-rate,--oauth2-bearer,--max-redirs=_
 --ciphers,--tls-max,--proxy-user,--dns-servers,--connect-to,--aws-sigv4,--keepalive-time,--expect100-timeout,--local-port,--noproxy=_
 -o,--output,-c,--cookie-jar,-D,--dump-header,--trace,--trace-ascii,--stderr,--etag-save=w --output-dir=> --url=h
 -K,--config,--etag-compare=q -E,--cert,--key,--cacert,--netrc-file,--unix-socket=u --capath=_
 -d,-F,--data,--data-ascii,--data-binary,--data-urlencode,--form,--form-string,--json,--url-query=@:~hH
 --data-raw=_:~hH -T,--upload-file=r:~hH -X,--request=_:@do=method -O,--remote-name,--remote-name-all,-J:@do=basename
 h*
wget, wget2 :
 -t,-T,-w,-Q,-U,-e,-l,-A,-R,-D,-I,-X,-B,--header,--user,--password,--user-agent,--tries,--timeout,--level,--accept,--reject=_
 --method,--referer,--limit-rate,--domains,--quota,--wait,--cut-dirs,--http-user,--http-password,--load-cookies=_
 -O,-o,-a,--output-document,--output-file,--append-output,--save-cookies=w -P,--directory-prefix=> -i,--input-file=q
 --certificate,--private-key,--ca-certificate=u
 --post-data,--body-data=_:~hH --post-file,--body-file=r:~hH --spider:! -r,-m,-p,--recursive,--mirror:@w=./
 @do=basename h*
http, https, xh, httpie :
 -a,-A,-b,-p,-s,--auth,--auth-type,--print,--style,--session,--timeout,--proxy,--verify,--cert=_ -o,--output=w
 -d,--download:@w=./ --raw=@ @do=httpie
aria2c, axel : -s,-x,-j,-k,-n,--header=_ -d,--dir=> -o,--out=w -i,--input-file=q @do=basename h*
lynx, links, w3m, elinks, fetch, get, lwp-request, lwp-download, youtube-dl, yt-dlp, gallery-dl, httrack, monolith :
 -o=w h*
scp : -3,-4,-6,-B,-C,-p,-q,-r,-v -c,-F,-i,-J,-l,-P,-S,-D,-X=_ -o=_:@do=filter y* Y
rsync :
 -f,-T,-B,-M,-@,--exclude,--include,--filter,--bwlimit,--timeout,--chmod,--chown,--max-size,--min-size,--port,--suffix,--info,--debug=_
 --exclude-from,--include-from,--files-from=q --password-file=u --log-file=w --backup-dir,--partial-dir,--temp-dir=W
 -e,--rsh,--rsync-path=_:@do=filter -n,--dry-run,--list-only:! --remove-source-files:@do=moves
 --delete,--delete-before,--delete-after,--delete-during,--delete-excluded,--del,--delete-delay:@do=mirror y* Y
sshpass : -f=u -d,-p,-P=_ @early s*
ssh, autossh, mosh, slogin : -b,-c,-D,-e,-F,-i,-I,-J,-l,-L,-m,-O,-o,-p,-Q,-R,-S,-W,-w,-B=_ -E=w @early H s*
sftp, ftp, lftp, tftp, ncftp, smbclient, rclone, croc, wormhole, magic-wormhole, transfer, ngrok, cloudflared,
 localtunnel, lt, bore, tailscale : @verbs @out @in @opaque _*
rclone copy, rclone sync, rclone move, rclone copyto, rclone moveto : --include,--exclude,--filter=_ -n,--dry-run:! y
 Y
rclone ls, rclone lsd, rclone lsl, rclone size, rclone check, rclone cat, rclone config, rclone listremotes, rclone
 version : @in _*
rclone delete, rclone purge, rclone cleanup, rclone deletefile : -n,--dry-run:! @out @lose=remote-files _*
ssh-keygen : -f=> -t,-b,-C,-N,-P,-m,-I,-n,-V,-z,-O,-D=_ -R,-H:@e=~/.ssh/known_hosts @do=keygen
ssh-copy-id : -p,-o=_ -i=u H
ssh-add, ssh-agent : -t,-c=_ u*
ssh-keyscan : -p,-t,-T=_ -f=q h*
nc, ncat, netcat, nc.openbsd, nc.traditional, telnet : -p,-s,-w,-x,-X,-i,-q,-I,-O,-P,-T,-V,-o,-g,-G=_
 -e,-c=_:@do=filter -l,--listen:_*&@out&@in -z:h+_* H _* @in
socat : @out @in @opaque
dig, nslookup, host, drill, delv, kdig, dog, doggo : @do=lookup
ping, ping6, traceroute, tracepath, mtr, fping, arping, whois, nmap, masscan, iperf, iperf3, speedtest, ntpdate,
 whatweb, nikto : -c,-i,-s,-t,-w,-W,-p,-n=_ -o,-oN,-oX,-oG=w h*
ip, ifconfig, route, netstat, ss, arp, hostnamectl, nmcli, ethtool, iw, iwconfig, networksetup, scutil : _*
mail, mailx, sendmail, mutt, msmtp, swaks, ssmtp : -a,-A,--attach=r -s,-r,-c,-b,-S=_ @out _*
docker : -H,-c,-l,--host,--context,--config,--log-level,--connection=_ @verbs @opaque
docker ps, docker images, docker image ls, docker inspect, docker logs, docker stats, docker top, docker port, docker
 version, docker info, docker diff, docker history, docker events, docker search, docker context ls, docker network
 ls, docker volume ls, docker container ls, docker system df, docker volume inspect, docker network inspect, docker
 image inspect, docker container inspect, docker container logs, docker buildx ls, docker wait, docker compose ps,
 docker compose logs, docker compose config, docker compose top, docker compose images, docker compose version, docker
 compose ls, docker manifest inspect, docker --version, docker -v, docker network create, docker volume create, docker
 tag, docker start, docker pause, docker unpause, docker rename, docker update, docker attach :
 -f,-n,--filter,--format,--tail,--since,--until=_ _*
docker run, docker create : -d,-i,-t @do=dockerrun @opaque
docker compose run : -d,-i,-t @do=dockerrun @opaque
docker exec, docker compose exec :
 -e,-u,-w,-T,--env,--user,--workdir,--index,--name,--entrypoint,-v,-p=_ --env-file=u @early _ s*
docker build, docker buildx build, docker compose build, docker builder build, docker image build :
 -t,--tag,--build-arg,--target,--platform,--label,--network,--cache-from,--cache-to,--progress,--secret,--ssh=_
 -f,--file=u --iidfile,--metadata-file=w -o,--output=_ --push:@out @opaque R*
docker compose up, docker compose start, docker compose restart, docker compose create, docker compose watch : @opaque
 _*
docker pull, docker compose pull, docker image pull : --platform=_ @in=registry-1.docker.io i*
docker push, docker compose push, docker image push, docker manifest push, docker buildx imagetools, docker trust sign
 : @out=registry-1.docker.io _*
docker login : -u,-p,--username,--password=_ @out _*
docker logout : _*
docker cp : -a,-L z Z
docker save, docker export : -o,--output=w _*
docker load, docker import : -i,--input=r r? _*
docker stop, docker kill, docker restart, docker compose stop, docker compose kill : -t,-s,--time,--signal=_ k*
docker rm, docker container rm, docker compose rm, docker compose down : -v,--volumes:@lose=volumes --rmi=_ -t=_ k*
docker rmi, docker image rm, docker image prune, docker builder prune, docker buildx prune : --filter=_ @lose=images
 _*
docker volume rm, docker volume prune, docker system prune, docker container prune, docker network prune, docker
 network rm : --filter=_ @lose=volumes _*
docker commit : -a,-m,-c=_ _*
docker compose : -f,-p,--file,--profile,--project-name,--project-directory,--env-file=_ @verbs @opaque
kubectl, microk8s :
 -n,-l,-o,-c,--namespace,--context,--kubeconfig,--cluster,--user,--selector,--output,--request-timeout,--token=_
 @verbs @global @out
kubectl get, kubectl describe, kubectl logs, kubectl top, kubectl version, kubectl explain, kubectl api-resources,
 kubectl api-versions, kubectl cluster-info, kubectl auth can-i, kubectl rollout status, kubectl rollout history,
 kubectl events, kubectl wait, kubectl diff, kubectl options : -f,--filename=u
 --tail,--since,--for,--timeout,--field-selector,--sort-by=_ @in _*
kubectl config view, kubectl config get-contexts, kubectl config current-context, kubectl completion, kubectl
 kustomize, kubectl help : _*
kubectl config use-context, kubectl config set-context, kubectl config set, kubectl config unset, kubectl config
 delete-context : @e=~/.kube/config _*
kubectl apply, kubectl create, kubectl replace, kubectl patch, kubectl set, kubectl edit, kubectl label, kubectl
 annotate, kubectl expose, kubectl run, kubectl scale, kubectl autoscale, kubectl rollout restart, kubectl rollout
 undo, kubectl cordon, kubectl uncordon, kubectl taint : -f,-k,--filename,--kustomize=U
 --from-file,--from-env-file,--patch-file=@ --dry-run=_:! --image,-p,--patch,--replicas,--type,--port=_ @out _*
kubectl delete, kubectl drain : -f,--filename=U --grace-period,--timeout=_ --dry-run=_:! @out @lose=cluster-resources
 _*
kubectl exec, kubectl attach, kubectl debug : @out _*
kubectl cp : z Z
kubectl port-forward, kubectl proxy : @in @out _*
kustomize, helmfile, skaffold, tilt, stern, kubectx, kubens, argocd, flux, istioctl, linkerd, velero, eksctl, kind,
 minikube, k3d, k3s, kubeadm, kops, rancher, crictl, ctr, buildah, skopeo, nomad, consul, waypoint, packer, vagrant,
 virsh, multipass, lima, limactl, colima, lxc, incus, qm, pct : @verbs @opaque
kustomize build : R
helm : -n,--namespace,--kube-context,--kubeconfig=_ @verbs @global @out
helm list, helm ls, helm status, helm get, helm history, helm version, helm env, helm search, helm show, helm repo
 list, helm plugin list : @in _*
helm template, helm lint, helm dependency list : -f,--values=u --set,--set-string=_ --output-dir=W _ R*
helm install, helm upgrade, helm rollback, helm test : -f,--values=u
 --set,--set-string,--set-file,--version,--timeout=_ --dry-run:! @out _*
helm uninstall, helm delete : --dry-run:! @out @lose=cluster-resources _*
helm pull, helm repo add, helm repo update, helm dependency update, helm dependency build : -d,--destination=W @in _*
helm push : @out r _
helm create : W
helm package : -d,--destination=W:^ @w=*.tgz R
terraform, tofu, terragrunt : -chdir=/ @verbs @global @dash @opaque
terraform plan, tofu plan, terragrunt plan : -out=w -var,-target=_ -var-file=u @dash @in @opaque _*
terraform init, tofu init, terragrunt init, terraform get, terraform providers : @dash -backend-config=_ @in
 @w=.terraform/ @opaque _*
terraform fmt, tofu fmt : -check:! -diff,-recursive -write=_ @dash E*=.
terraform validate, terraform version, terraform show, terraform output, terraform graph, terraform console, terraform
 state list, terraform state show, terraform workspace list, terraform workspace show, tofu validate, tofu show, tofu
 output, tofu version, tofu state list : @dash _*
terraform apply, tofu apply, terragrunt apply, terraform import, terraform refresh, terraform taint, terraform
 untaint, terraform state push : @dash -var,-target=_ -var-file=u @out @e=terraform.tfstate @opaque _*
terraform destroy, tofu destroy, terragrunt destroy, terraform state rm, tofu state rm, terraform force-unlock,
 terraform workspace delete : @dash -var,-target=_ @out @e=terraform.tfstate @lose=infrastructure @opaque _*
terraform state pull : @in _*
pulumi, cdk, cdktf, sam, serverless, sls, ansible, ansible-playbook, ansible-galaxy, ansible-vault, salt, puppet,
 chef, knife, fab, cap, copilot-cli : @verbs @out @opaque
pulumi preview, pulumi stack ls, cdk diff, cdk ls, cdk synth, sam validate, pulumi version, cdk --version : @in
 @opaque _*
pulumi destroy, cdk destroy, sam delete, serverless remove, sls remove : @out @lose=infrastructure @opaque _*
aws : --profile,--region,--output,--query,--endpoint-url,--color,--cli-read-timeout,--ca-bundle=_ @verbs @global
 @out=amazonaws.com
aws * describe-*, aws * list-*, aws * get-*, aws * ls, aws * head-*, aws sts *, aws * help, aws help, aws * wait, aws
 * search-*, aws * lookup-*, aws * batch-get-*, aws * query, aws * scan, aws logs tail, aws logs filter-log-events,
 aws --version : --cli-input-json=@ @in=amazonaws.com _*
aws configure : @e=~/.aws/config @e=~/.aws/credentials _*
aws configure list, aws configure get, aws configure list-profiles : _*
aws s3 cp, aws s3 mv, aws s3 sync : --exclude,--include,--acl,--storage-class,--content-type,--cache-control,--sse=_
 --dryrun:! y Y
aws s3 rm, aws s3 rb, aws * delete-*, aws * terminate-*, aws * remove-*, aws * purge-*, aws * deregister-*, aws *
 revoke-* : --dryrun:! @out=amazonaws.com @lose=cloud-resources _*
aws s3api get-object : @in=amazonaws.com w
aws s3api put-object : --body=r @out=amazonaws.com _*
gcloud, gsutil, bq : --project,--account,--format,--region,--zone,--filter,--limit=_ -m @verbs @global
 @out=googleapis.com
gcloud * list, gcloud * * list, gcloud * describe, gcloud * * describe, gcloud info, gcloud version, gcloud config
 list, gcloud config get-value, gcloud auth list, gcloud logging read, gcloud projects list, gsutil ls, gsutil cat,
 gsutil stat, gsutil du, gsutil version, bq ls, bq show, bq head : @in=googleapis.com _*
gcloud config *, gcloud auth * : @w=~/.config/gcloud/ _*
gsutil cp, gsutil mv, gsutil rsync, gcloud storage cp, gcloud storage mv, gcloud storage rsync : -h=_ y* Y
gcloud compute scp : --zone=_ y* Y
gsutil rm, gsutil rb, gcloud storage rm, gcloud * delete, gcloud * * delete, bq rm : @out=googleapis.com
 @lose=cloud-resources _*
az : -g,-n,-o,--resource-group,--name,--subscription,--output,--query=_ @verbs @global @out=management.azure.com
az * list, az * * list, az * show, az * * show, az account *, az version, az * get-credentials :
 @in=management.azure.com _*
az * delete, az * * delete, az * purge : @out=management.azure.com @lose=cloud-resources _*
az storage blob upload, az storage blob upload-batch, az storage file upload : -f,-s,--file,--source=R -c,-d,-n=_
 @out=blob.core.windows.net _*
az storage blob download, az storage blob download-batch : -f,-d,--file,--destination=W -c,-s,-n=_
 @in=blob.core.windows.net _*
doctl, heroku, fly, flyctl, vercel, netlify, wrangler, firebase, railway, render, supabase, surge, amplify, eb,
 ibmcloud, oci, linode-cli, hcloud, scw, cf, civo, vultr-cli, ovh, s3cmd, s5cmd, mc, b2, restic, borg, duplicity,
 duplicacy, kopia, rdiff-backup, tarsnap, sentry-cli, stripe, datadog-ci, newrelic, circleci, travis, buildkite-agent,
 act, jira, linear, slack, twilio, shopify, contentful, algolia, snyk-cli, sonar-scanner, codecov : @verbs @out
 @opaque
vault, op, doppler, infisical, bw, lpass, chamber, berglas, keybase, pass, gopass, keyring, secret-tool, security :
 @verbs @in @out @opaque
psql, pgcli, mysql, mariadb, mycli, mongosh, mongo, redis-cli, valkey-cli, keydb-cli, sqlcmd, clickhouse-client,
 clickhouse, cqlsh, influx, snowsql, bigquery, trino, presto, cockroach, etcdctl, zkCli.sh, kafka-topics,
 kafka-console-producer, kafka-console-consumer, kcat, rabbitmqadmin, nats, duckdb, usql, litecli, isql, tsql,
 sqlplus, impala-shell, beeline, spark-sql, neo4j, cypher-shell, arangosh : -f,--file=q -o,--output=w
 -c,-h,-p,-U,-d,-u,-P,-e,-D,-H,-n,-a,-v,-S,--command,--host,--port,--username,--dbname,--user,--password,--eval,--execute=_
 -L,--log-file=w @do=database _*
sqlite3, sqlite, duckdb : @do=sqlite -init=r -cmd,-separator,-nullvalue,-newline=_ -readonly:~er
 -version,-help:_* @dash e? _*
pg_dump, pg_dumpall, mysqldump, mariadb-dump, mongodump, mongoexport, pg_basebackup :
 -f,-o,-r,--file,--out,--result-file=w
 -h,-p,-U,-d,-u,-P,-t,-n,-T,-F,-c,-q,-D,--host,--port,--username,--dbname,--table,--format,--db,--collection=_ @in _*
pg_restore, mongorestore, mongoimport :
 -h,-p,-U,-d,-t,-n,-F,-j,-c,--host,--port,--username,--dbname,--table,--format,--db,--collection=_ --file=r -f=w @out
 r*
mysqlimport, pgloader, liquibase, flyway, goose, dbmate, atlas, sqitch : @out @opaque
createdb, createuser, mysqladmin, pg_ctl, initdb, pg_isready, mysql_secure_installation, redis-server, mongod,
 postgres, mysqld : @opaque
dropdb, dropuser : @out @lose=databases _*
pg_isready : -h,-p,-U,-d=_ @in _*
"""
