# ruby batch.rb STORE < links: prints the URLs that are new

require "net/http"
require "securerandom"

answer = Net::HTTP.post(URI("#{ARGV[0]}/add?only=new"), STDIN.read,
    "Content-Type" => "text/plain", "Accept" => "text/plain",
    "Idempotency-Key" => "\"#{SecureRandom.uuid}\"")
answer.value        # raises an error unless it is 2xx

answer.body.each_line(chomp: true) do |line|
    id, status, url = line.split("\t")
    puts "#{id} #{url}" if status == "new"
end
